"""Tables and fitted parameters that ship with the package."""

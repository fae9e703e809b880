"""The study of matched pairs: errors recovered, and what that costs in false positives."""

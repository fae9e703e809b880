"""Work on text without a model: tokens, blocks, sentences, kinds and subjects."""

"""What stands behind `tensorlang.nn.functional`, by kind: torch's signatures around operators."""

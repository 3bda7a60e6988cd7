"""Which regularizer helps on a person's own data, and by how much."""

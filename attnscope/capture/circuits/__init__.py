"""Head circuits: the four matrices of each head, and the norms on the path from one head to a later one."""

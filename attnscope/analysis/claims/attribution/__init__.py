"""How much of an answer each head is answerable for, beside other answers that the model could have given."""

"""What each part of the input does to an answer: replaced in its turn, and by gradients."""

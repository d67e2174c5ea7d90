"""Inputs of a model: token ids and mask of a text, decoder targets, chats, generated continuations."""

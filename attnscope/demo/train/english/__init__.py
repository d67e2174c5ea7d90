"""An artificial language: its words, their forms, sentences about things that open, bark or are eaten."""

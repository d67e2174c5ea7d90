"""What stands on the screen: panes that show a drawing, cards over them, a line to write in."""

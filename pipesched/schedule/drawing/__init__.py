"""What every drawing of a timeline shares: its boxes and their colours, without any library that draws."""

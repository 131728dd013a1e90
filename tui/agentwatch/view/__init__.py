"""The words, colours, order and JSON of tasks, the same for the screen, the commands and the reports. No I/O."""

"""What a frame is: header tables, opcodes, AETH codes, ICRC, pause frames, and reading one frame."""

"""`hop.py KIT`: carry out the ITK's instruction on stdin by the kit's own code, and print what the called agents said."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(sys.argv[1]) / "agents" / "python" / "v10"))

import main
from pyproto.instruction_pb2 import Instruction

instruction = Instruction.FromString(sys.stdin.buffer.read())
texts = asyncio.run(main.handle_instruction(instruction))
json.dump({"text": "\n".join(texts), "hold": main._should_hold(instruction)}, sys.stdout)

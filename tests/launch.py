"""Processes as `accelerate launch` starts them."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def launch(*arguments):
    """(exit code, standard error) of lalkit as two ranks on the CPU, started as `accelerate launch --multi_gpu` starts them."""
    command = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--num_machines",
               "1", "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0", "-m", "lalkit"]  # fmt: skip
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, timeout=300, cwd=ROOT)
    return done.returncode, done.stderr

"""python -m lalkit"""

from lalkit.cli import main

main()

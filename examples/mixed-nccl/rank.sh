#!/bin/sh
# One rank of a mixed job on GPUs: rank 0 is Python, the others are Node. See README.md.
folder=$(dirname "$0")
if [ "$RANK" = 0 ]; then
  exec "${PYTHON_EXEC:-python3}" -u "$folder/rank.py"
else
  exec node "$folder/rank.mjs"
fi

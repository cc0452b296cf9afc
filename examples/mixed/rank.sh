#!/bin/sh
# One rank of a mixed job: rank 0 is Python, the others are Node. All meet in the store that the launcher serves.
#
#   RINGWISE_SECRET= npx ringwise run --nproc-per-node 3 --no-python examples/mixed/rank.sh
#
# The empty secret opens the store to all processes of this host: torch's client cannot prove a secret.
folder=$(dirname "$0")
if [ "$RANK" = 0 ]; then
  exec "${PYTHON_EXEC:-python3}" -u "$folder/rank.py"
else
  exec node "$folder/rank.mjs"
fi

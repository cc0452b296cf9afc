#!/bin/sh
# The launch agent of Open MPI for hosts that are network namespaces. Gets an address and a command, as ssh does, and
# runs the command in the namespace of that address, with the namespace's name as host name. RINGWISE_HOSTS maps
# addresses to namespaces: "address=namespace …".
while [ $# -gt 0 ]; do case "$1" in -*) shift ;; *) break ;; esac; done
address=$1
shift
for pair in $RINGWISE_HOSTS; do
  case "$pair" in "$address="*) exec ip netns exec "${pair#*=}" unshare -u sh -c "hostname ${pair#*=}; $*" ;; esac
done
echo "enter-host: $address is not in $RINGWISE_HOSTS" >&2
exit 1

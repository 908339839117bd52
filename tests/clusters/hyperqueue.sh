#!/bin/bash
# Starts a HyperQueue server with a journal and workers on this machine, and runs a campaign of 200 shards.
# Meanwhile a worker is killed with its process tree, and the server is killed and restarted from its journal.
# The results must be those of one worker.
set -euo pipefail
. "$(dirname "$0")/common.sh"

export HQ_SERVER_DIR=$work/hq
journal=$work/journal
mkdir -p "$HQ_SERVER_DIR"

start_server() {
  hq server start --journal "$journal" >>"$work/server.out" 2>&1 &
  server=$!
  started+=("$server")
  until_true 20 hq server info >/dev/null 2>&1
}

start_worker() {
  hq worker start --cpus 1 --on-server-lost stop >>"$work/worker.out" 2>&1 &
  started+=("$!")
}

# Kills a worker and its process tree in the middle of a shard.
kill_worker() {
  local tree
  for shard in $(pgrep -x flipwave); do
    { tr '\0' '\n' <"/proc/$shard/environ"; } 2>/dev/null | grep -qx "HQ_SERVER_DIR=$HQ_SERVER_DIR" || continue
    kill -STOP "$shard" 2>/dev/null || continue
    tree=("$shard")
    while [ "$(ps -o comm= -p "${tree[-1]}")" != hq ]; do
      tree+=("$(ps -o ppid= -p "${tree[-1]}" | tr -d ' ')")
      [ "${tree[-1]:-1}" != 1 ] || break
    done
    [ "${tree[-1]:-1}" != 1 ] || { kill -CONT "$shard"; continue; }
    # The worker first: it must not report the end of the other processes.
    kill -9 "${tree[-1]}" "${tree[@]}" 2>/dev/null
    return 0
  done
  return 1
}

start_server
for _ in 1 2 3; do start_worker; done

say "$(hq --version) with 3 workers runs 200 shards"
begun=$SECONDS
"$flipwave" submit "$campaign" --engine hyperqueue --shards 200 --out "$results" \
  >"$work/submitted" 2>"$work/submit.err" || { cat "$work/submit.err"; exit 1; }
cat "$work/submitted"
job=$(sed -n 's/^job: //p' "$work/submitted")

until_true 60 more_than 30
say "killing a worker in the middle of a shard and starting another one"
until_true 20 kill_worker
start_worker

until_true 60 more_than 60
say "killing the server and restarting it from its journal"
kill -9 "$server"
sleep 2
start_server
for _ in 1 2 3; do start_worker; done

until_true 240 test -s "$results/run.json"
finished() { hq job list --filter finished --output-mode quiet | grep -q "^$job "; }
until_true 30 finished
same_as_one_worker
"$flipwave" status "$results" --json | grep -q '"lost": [1-9]' || { say "nothing was lost"; exit 1; }
say "HyperQueue: results identical to those of one worker after $((SECONDS - begun)) s"

#!/bin/bash
# Starts a Slurm cluster on this machine (munge, a controller and four nodes) in a temporary folder, and runs
# a campaign of 200 shards. Meanwhile a node is killed, a job is requeued, another one gets SIGTERM, and the
# controller is restarted. The results must be those of one worker.
set -euo pipefail
. "$(dirname "$0")/common.sh"

nodes=4
slurm=$work/slurm
mkdir -p "$slurm"/{state,spool,log}
host=$(hostname)

dd if=/dev/urandom of="$slurm/munge.key" bs=1024 count=1 status=none
chmod 400 "$slurm/munge.key"
cat >"$slurm/slurm.conf" <<CONF
ClusterName=flipwave
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
# A requeued job waits until its previous credential has expired: 120 s by default.
AuthInfo=socket=$slurm/munge.socket,cred_expire=5
CryptoType=crypto/munge
SlurmctldPort=$((base_port))
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmctldLogFile=$slurm/log/slurmctld
SlurmdPidFile=$slurm/slurmd-%n.pid
SlurmdLogFile=$slurm/log/slurmd-%n
SlurmdSpoolDir=$slurm/spool/%n
StateSaveLocation=$slurm/state
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_min_interval=200000,batch_sched_delay=0
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=6
SlurmctldTimeout=30
KillWait=5
MinJobAge=300
MaxArraySize=151
NodeName=node[1-$nodes] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((base_port + 1))-$((base_port + nodes))] CPUs=1 RealMemory=256 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$slurm/slurm.conf

# Prints an environment variable of a process of this cluster; nothing for other processes.
variable() {
  local environment
  environment=$({ tr '\0' '\n' <"/proc/$1/environ"; } 2>/dev/null) || return 0
  grep -qx "SLURM_CONF=$SLURM_CONF" <<<"$environment" || return 0
  sed -n "s/^$2=//p" <<<"$environment"
}

# Kills a node like a power failure. Its daemon and step managers are stopped first, so that they report nothing.
# Jobs are killed before them, because a stopped process is continued with SIGHUP when its parent dies.
kill_node() {
  local jobs=() steps=()
  for process in $(pgrep -x 'shard.sh|flipwave'); do
    [ "$(variable "$process" SLURMD_NODENAME)" = "$1" ] || continue
    jobs+=("$process")
    parent=$(ps -o ppid= -p "$process" | tr -d ' ')
    [ "$(ps -o comm= -p "$parent")" != slurmstepd ] || steps+=("$parent")
  done
  local daemons=("$(cat "$slurm/slurmd-$1.pid")" "${steps[@]}")
  kill -STOP "${daemons[@]}"
  kill -9 "${jobs[@]}"
  kill -9 "${daemons[@]}"
}

# Stops the process of some shard, on node $1 if given.
caught() {
  for process in $(pgrep -x flipwave); do
    node=$(variable "$process" SLURMD_NODENAME)
    if [ -n "$node" ] && [ "${1:-$node}" = "$node" ] && kill -STOP "$process" 2>/dev/null; then
      [ -n "$(variable "$process" SLURM_JOB_ID)" ] || continue
      shard=$process
      return 0
    fi
  done
  return 1
}

start_controller() {
  slurmctld -f "$SLURM_CONF" -D >"$slurm/log/slurmctld.out" 2>&1 &
  controller=$!
  started+=("$controller")
}

munged --foreground --force --key-file="$slurm/munge.key" --socket="$slurm/munge.socket" \
  --pid-file="$slurm/munge.pid" --log-file="$slurm/log/munged" --seed-file="$slurm/munge.seed" \
  >"$slurm/log/munged.out" 2>&1 &
started+=("$!")
until_true 20 test -S "$slurm/munge.socket"
start_controller
for number in $(seq $nodes); do
  slurmd -D -f "$SLURM_CONF" -N "node$number" >"$slurm/log/slurmd-$number.out" 2>&1 &
  started+=("$!")
done
all_idle() { [ "$(sinfo -h -N -o %T 2>/dev/null | grep -c '^idle$')" = $nodes ]; }
until_true 60 all_idle

say "Slurm $(slurmctld -V | cut -d' ' -f2) with $nodes nodes runs 200 shards"
begun=$SECONDS
"$flipwave" submit "$campaign" --engine slurm --shards 200 --grace 5 --out "$results" \
  >"$work/submitted" 2>"$work/submit.err" ||
  { cat "$work/submit.err"; exit 1; }
cat "$work/submitted"
jobs=$(sed -n 's/^job: //p' "$work/submitted")
merge=$(echo "$jobs" | tail -1)

until_true 60 more_than 20
until_true 20 caught
task=$(variable "$shard" SLURM_JOB_ID)
say "requeuing job $task"
scontrol requeue "$task"
kill -CONT "$shard" 2>/dev/null || :

# Interrupts a shard and succeeds if it had injected faults: it may be too early or too late.
interrupted() {
  caught || return 1
  # scancel waits for a reply, possibly until the end of the job.
  scancel --batch --signal=TERM "$(variable "$shard" SLURM_JOB_ID)" &
  local asking=$!
  # The signal has arrived when it is pending in the process: number 15.
  until_true 5 grep -q '^ShdPnd:.*[4-7c-f]...$' "/proc/$shard/status"
  kill "$asking" 2>/dev/null || :
  kill -CONT "$shard"
  sleep 0.5
  grep -l '"state": "interrupted"' "$results"/attempts/*.json | xargs -r grep -q '"done": [1-9]'
}
until_true 60 more_than 35
say "sending SIGTERM to jobs until one has written a part of its rows"
until_true 60 interrupted

until_true 60 more_than 60
# Stops a shard on node $1 that is reported as running: the loss of another one would not be noticed.
at_work() {
  caught "$1" || return 1
  grep -l "\"process\": $shard," "$results"/attempts/*.json | xargs -r grep -q '"state": "running"' && return 0
  kill -CONT "$shard"
  return 1
}
until_true 20 at_work node2
say "killing node2 in the middle of a shard"
kill_node node2

until_true 60 more_than 80
say "ending the controller and restarting it after 3 s"
# With SIGTERM, like systemd: after SIGKILL, the controller forgets jobs that it has started and drains nodes
# with unknown jobs.
kill "$controller"
wait "$controller" || :
sleep 3
start_controller

ended() { [ -z "$(squeue -h -j "$merge" 2>/dev/null)" ]; }
until_true 240 ended
node_is_down() { sinfo -h -N -n node2 -o %T | grep -q down; }
node_is_down || { say "node2 is not down"; exit 1; }
same_as_one_worker
"$flipwave" status "$results" --json >"$work/status.json"
for sign in '"lost": [1-9]' '"merged": true'; do
  grep -q "$sign" "$work/status.json" || { say "no $sign in the status"; exit 1; }
done
say "Slurm: results identical to those of one worker after $((SECONDS - begun)) s"

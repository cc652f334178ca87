# For tests of programs, to be sourced: what they say, and their exit status. `failures` counts what went wrong.
failures=0
# ends STATUS TEXT COMMAND...: the command ends with STATUS and says TEXT, an extended regular expression.
ends() {
  local status=$1 text=$2 said got=0
  shift 2
  said=$("$@" 2>&1) || got=$?
  if [ "$got" -ne "$status" ] || ! grep -qE -- "$text" <<<"$said"; then
    printf 'FAILED: %s\n  status %s, wanted %s\n  wanted: %s\n  said: %s\n' "$*" "$got" "$status" "$text" "$said"
    failures=$((failures + 1))
  fi
}
# refuses TEXT COMMAND...: it ends with the status of bad input.
refuses() { ends 2 "$@"; }

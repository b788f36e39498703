#!/usr/bin/env bash
# Runs Gemini CLI through alhena and tells GitHub how it went: exit code, outputs, annotations, a summary.
#
# Whatever the model says is foreign text. In the log it stands where commands are off (`::stop-commands::`), in outputs
# between delimiters that nobody can guess, in the summary as text and never as markup, in annotations escaped. The agent
# does not get the variables that say where GitHub reads commands from.
set -euo pipefail
# One stream: between two, GitHub does not keep the order, and commands are off only for a part of it.
exec 2>&1

readonly ALHENA_VERSION="0.1.0"

random() {
  od -An -N16 -tx1 /dev/urandom | tr -d ' \n'
}

# A message without what GitHub would read as its end.
message() {
  local text=$1
  text=${text//'%'/'%25'}
  text=${text//$'\r'/'%0D'}
  printf '%s' "${text//$'\n'/'%0A'}"
}

# A property ends at more.
property() {
  local text
  text=$(message "$1")
  text=${text//':'/'%3A'}
  printf '%s' "${text//','/'%2C'}"
}

annotate() { # LEVEL TITLE MESSAGE
  printf '\n::%s title=%s::%s\n' "$1" "$(property "$2")" "$(message "$3")"
}

output() { # NAME VALUE
  local end
  end=$(random)
  printf '%s<<%s\n%s\n%s\n' "$1" "$end" "$2" "$end" >>"$GITHUB_OUTPUT"
}

# Ends the step before anything ran.
refuse() { # MESSAGE
  output status failed
  output exit-code 2
  output files '[]'
  output failure-kind input
  output failure "$1"
  annotate error Alhena "$1"
  printf '## Gemini CLI: failed\n\nNothing ran; the log says why.\n' >>"$GITHUB_STEP_SUMMARY"
  exit 2
}

: "${GITHUB_OUTPUT:?this script is for GitHub Actions}"
: "${GITHUB_STEP_SUMMARY:=/dev/null}"
work=$(mktemp -d "${RUNNER_TEMP:-/tmp}/alhena-XXXXXXXX")
command -v jq >/dev/null || refuse 'jq is needed and is not on PATH'

find_alhena() {
  if [ -n "${ALHENA_ACTION_ALHENA:-}" ]; then
    alhena=$ALHENA_ACTION_ALHENA
  elif alhena=$(type -P alhena) && [[ $alhena == /* ]]; then
    return
  else
    printf '::group::Install alhena %s\n' "$ALHENA_VERSION"
    # Not from the checkout: a file there that is called pip would be run instead.
    (cd "$work" && python3 -m pip install --quiet --disable-pip-version-check --target "$work/python" "alhena==$ALHENA_VERSION") ||
      refuse "alhena $ALHENA_VERSION could not be installed from PyPI"
    printf '::endgroup::\n'
    alhena=$work/python/bin/alhena
  fi
  [ -x "$alhena" ] || refuse "$alhena is no program"
}
find_alhena

# Whether a relative path is a file in this directory: a link in a checkout can lead to secrets. An absolute one is the
# workflow's own choice.
inside() {
  local real
  [ -f "$1" ] || return 1
  [[ $1 == /* ]] && return
  real=$(realpath -- "$1") && [[ $real == "$(pwd -P)"/* ]]
}

# Every value is part of its option, so that none can be taken for another.
arguments=(run --as=text --trust "--record=$work/record" --quiet)
add() { # OPTION VALUE
  if [ -n "$2" ]; then arguments+=("$1=$2"); fi
}
add --model "${ALHENA_ACTION_MODEL:-}"
add --approval "${ALHENA_ACTION_APPROVAL:-}"
add --dir "${ALHENA_ACTION_DIR:-}"
add --gemini "${ALHENA_ACTION_VERSION:-}"
timeout=${ALHENA_ACTION_TIMEOUT:-10m}
add --timeout "$timeout"
add --first-event-timeout "$timeout"
add --stall-timeout "$timeout"
add --max-tokens "${ALHENA_ACTION_MAX_TOKENS:-}"
add --max-cost "${ALHENA_ACTION_MAX_COST:-}"
add --max-calls "${ALHENA_ACTION_MAX_CALLS:-}"
schema=${ALHENA_ACTION_SCHEMA:-}
# JSON begins with a brace; everything else is the name of a file.
if [[ $schema =~ ^[[:space:]]*\{ ]]; then
  printf '%s' "$schema" >"$work/schema.json"
elif [ -n "$schema" ]; then
  inside "$schema" || refuse 'schema has to be JSON, or a file in the workspace'
  cat -- "$schema" >"$work/schema.json" || refuse 'schema cannot be read'
fi
add --schema "${schema:+$work/schema.json}"
while IFS= read -r tool; do
  add --allow-tool "${tool%$'\r'}"
done <<<"${ALHENA_ACTION_ALLOW_TOOLS:-}"
case ${ALHENA_ACTION_OFFLINE:-false} in
true) arguments+=(--offline) ;;
false | '') ;;
*) refuse 'offline has to be true or false' ;;
esac

if [ -n "${ALHENA_ACTION_PROMPT:-}" ] && [ -n "${ALHENA_ACTION_PROMPT_FILE:-}" ]; then
  refuse 'Give prompt or prompt-file, not both'
elif [ -n "${ALHENA_ACTION_PROMPT:-}" ]; then
  printf '%s' "$ALHENA_ACTION_PROMPT" >"$work/prompt"
elif [ -n "${ALHENA_ACTION_PROMPT_FILE:-}" ]; then
  inside "$ALHENA_ACTION_PROMPT_FILE" || refuse 'prompt-file has to be a file in the workspace'
  cat -- "$ALHENA_ACTION_PROMPT_FILE" >"$work/prompt" || refuse 'prompt-file cannot be read'
else
  refuse 'Give a prompt, or a prompt-file'
fi

# The agent gets neither the files that GitHub reads commands from nor the runner's own tokens.
environment=()
while IFS= read -r name; do
  case $name in
  GITHUB_OUTPUT | GITHUB_ENV | GITHUB_PATH | GITHUB_STATE | GITHUB_STEP_SUMMARY | ACTIONS_* | ALHENA_ACTION_*)
    environment+=(-u "$name")
    ;;
  esac
done < <(compgen -e)

# A cancelled job is a cancelled run: alhena stops the agent and everything that it started.
child=
cancelled=
untold=
heard=
trap 'cancelled=1; heard=1; if [ -z "$child" ]; then untold=1; else kill -TERM "$child" 2>/dev/null || true; fi' INT TERM

commands_on=$(random)
printf '::stop-commands::%s\n' "$commands_on"
code=0
if [ -n "$cancelled" ]; then
  code=130
  echo "error: cancelled before it began" >"$work/stderr"
else
  env "${environment[@]}" "$alhena" "${arguments[@]}" - <"$work/prompt" 2>"$work/stderr" &
  child=$!
  # It may have come before anybody knew whom to tell. Twice is not told: a second signal means at once.
  if [ -n "$untold" ]; then kill -TERM "$child" 2>/dev/null || true; fi
  # A signal ends `wait`, too: then it is waited for again, also if it has ended since.
  while :; do
    heard=
    code=0
    wait "$child" || code=$?
    if [ -z "$heard" ]; then break; fi
  done
  # Who is ended that early says nothing of it.
  if [ -n "$cancelled" ] && [ "$code" -eq 143 ]; then code=130; fi
fi
child=
cat -- "$work/stderr"
printf '\n::%s::\n' "$commands_on"

# The kinds behind the exit codes that have one.
kind_of() {
  case $1 in
  2) echo input ;;
  3) echo not_installed ;;
  4) echo auth ;;
  5) echo untrusted ;;
  6) echo rate_limited ;;
  7) echo turn_limit ;;
  8) echo schema ;;
  9) echo budget ;;
  124) echo timeout ;;
  130) echo cancelled ;;
  *) echo crashed ;;
  esac
}

outcome=$work/outcome.json
"$alhena" parse "$work/record" --as=outcome >"$outcome" 2>/dev/null || true
jq -es 'length == 1 and (.[0] | type == "object")' "$outcome" >/dev/null 2>&1 || printf '{}\n' >"$outcome"
# The same with only what is used here, and each part in its form, whatever it was.
jq -c '
  def texts: if type == "array" then map(strings) else [] end;
  def number: if type == "number" then . else 0 end;
  {
    final_text: ((.final_text | strings) // ""),
    duration_ms: (.duration_ms | number),
    tool_calls: (.tool_calls | number),
    tokens: ((.usage | objects | .total | number) // 0),
    models: (.models | texts),
    warnings: (.warnings | texts),
    files: [.files | arrays[] | objects | {path: (.path | tostring), change: (.change | tostring), claimed, verified}],
    failure: ((.failure | objects) // {}),
    cost: ((.cost_usd | numbers | tostring) // ""),
    data: (if has("data") then .data | tojson else "" end),
    status,
    session_id
  }' "$outcome" >"$work/used.json"
field() { # FILTER: of the outcome; empty when it has none
  jq -r "$1 // empty" "$work/used.json"
}
status=$(field '.status | strings')
case $status in
success | failed | cancelled | timeout | stalled) ;;
*) status= ;;
esac
kind=$(field '.failure.kind | strings')
failure=$(field '.failure.message | strings')
hint=$(field '.failure.hint | strings')
if [ "$code" -ne 0 ] && { [ -z "$status" ] || [ "$status" = success ]; }; then
  # It did not get as far as an outcome.
  status=failed
  if [ "$code" -eq 130 ]; then status=cancelled; fi
  failure=$(grep -m1 '^error: ' "$work/stderr" | cut -c8-1000 || true)
  hint=$(grep -m1 '^hint: ' "$work/stderr" | cut -c7-1000 || true)
  kind=$(kind_of "$code")
  failure=${failure:-"alhena ended with exit code $code and without an outcome"}
elif [ "$code" -eq 0 ] && [ "$status" != success ]; then
  code=1
  status=failed
  kind=${kind:-protocol}
  failure=${failure:-alhena gave no outcome}
fi
cost=$(field .cost)
data=
if [ "$status" = success ]; then
  data=$(field '.data | select(length <= 200000)')
fi
tokens=$(field .tokens)

output status "$status"
output exit-code "$code"
output text "$(field '.final_text | .[0:200000]')"
output data "$data"
output session-id "$(field '.session_id | strings')"
output files "$(jq -c '.files[0:1000]' "$work/used.json")"
output tokens "$tokens"
output cost "$cost"
output failure-kind "$kind"
output failure "$failure"
output outcome "$outcome"

if [ "$status" != success ]; then
  annotate error "Gemini CLI: $status${kind:+ ($kind)}" "$failure${hint:+ $hint}"
fi
warnings=0
while IFS= read -r warning && [ "$warnings" -lt 5 ]; do
  warnings=$((warnings + 1))
  annotate warning 'Gemini CLI' "$(jq -r . <<<"$warning")"
done < <(jq -c '.warnings[] | .[0:2000]' "$work/used.json")

# In the summary foreign text is spelled in entities, which GitHub shows and never reads as markup; long text is in a fence
# that is longer than any in it.
summary() {
  jq -r --arg status "$status" --arg kind "$kind" --arg failure "$failure" --arg hint "$hint" --arg cost "$cost" '
    def plain: explode | map(
      if (. >= 48 and . <= 57) or (. >= 65 and . <= 90) or (. >= 97 and . <= 122) or . == 32 or . == 45 or . == 47
      then [.] | implode
      elif . < 32 or . == 127 then "&#65533;"
      else "&#\(.);" end) | join("");
    def fence: "`" * ([scan("`+") | length] + [2] | max + 1);
    def block: .[0:100000] | fence as $fence | "\($fence)text\n\(.)\n\($fence)";
    "## Gemini CLI: \($status | plain)",
    "",
    (if $status == "success" then empty else "**\($kind | plain)**: \($failure | .[0:2000] | plain) \($hint | .[0:2000] | plain)", "" end),
    "| Time | Tokens | Cost | Tool calls | Models |",
    "|---|---|---|---|---|",
    "| \(.duration_ms / 1000 | floor) s | \(.tokens) | \(if $cost == "" then "not known" else "$\($cost)" end | plain) | \(.tool_calls) | \(.models | map(plain) | join(", ")) |",
    "",
    (if .files == [] then "No file changed." else
      "| File | Change | On disk |", "|---|---|---|",
      (.files[0:200][] | "| \(.path | plain) | \(.change | plain) | \(if .verified == true then "yes" else "not seen" end) |"),
      (if (.files | length) > 200 then "", "\((.files | length) - 200) more." else empty end) end),
    "",
    (if .final_text == "" then empty else "### Answer", "", (.final_text | block) end)
  ' "$work/used.json"
}
summary >>"$GITHUB_STEP_SUMMARY"
exit "$code"

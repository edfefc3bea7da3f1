#!/usr/bin/env bash
# An agent's host in bash, without other programs: everything but the model. usage: host.sh [FOLDER WITH TOOLS]
set -euo pipefail
trap '' PIPE # writing to a daemon that is gone is an error that is seen, not a silent end

number=0

# A text as a JSON string.
quoted() {
  local text=$1
  text=${text//\\/\\\\}
  text=${text//\"/\\\"}
  text=${text//$'\n'/\\n}
  text=${text//$'\t'/\\t}
  printf '"%s"' "$text"
}

# The last text field of this name in a line of JSON, as plain text.
field() {
  local name=$1 line=$2
  [[ $line =~ .*\"$name\":\"(([^\"\\]|\\.)*)\" ]] || return 1
  local text=${BASH_REMATCH[1]//\\\"/\"}
  printf '%b' "$text"
}

# call METHOD PARAMS: sends a request, answers what the daemon asks meanwhile, leaves the reply in $reply.
call() {
  number=$((number + 1))
  printf '{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}\n' "$number" "$1" "$2" >&"${tamis[1]}"
  while IFS= read -r reply <&"${tamis[0]}"; do
    if [[ $reply == *'"method":"tool/requestApproval"'* ]]; then
      approve
    elif [[ $reply == '{"jsonrpc":"2.0","id":'$number,* ]]; then
      [[ $reply == '{"jsonrpc":"2.0","id":'$number',"error":'* ]] || return 0
      echo "error: $(field message "$reply")" >&2
      return 1
    fi
  done
  echo "the daemon ended" >&2
  return 1
}

# Where a real host asks its user.
approve() {
  [[ $reply =~ \"id\":\"([^\"]*)\" ]] && local id=${BASH_REMATCH[1]}
  [[ $reply =~ \"tool\":\"([^\"]*)\" ]] && local tool=${BASH_REMATCH[1]}
  local kind=reject_once
  [[ $tool != units:convert ]] || kind=allow_once
  echo "asked: $tool -> $kind"
  [[ $reply =~ \"optionId\":\"([^\"]*)\",\"label\":\"[^\"]*\",\"kind\":\"$kind\" ]]
  printf '{"jsonrpc":"2.0","id":"%s","result":{"outcome":"selected","optionId":"%s"}}\n' "$id" "${BASH_REMATCH[1]}" >&"${tamis[1]}"
}

# Stands for a model: what it would say, turn by turn.
turns=(
  "I convert. <ACTION><units:convert><value>26.2</value><from_unit>mi</from_unit><to_unit>km</to_unit></units:convert></ACTION>"
  "<ACTION><text:statistics><text>A \"secret\".</text></text:statistics></ACTION>"
  "It is 42.1648 km."
)

coproc tamis { exec "${TAMIS:-tamis}" rpc --root "${1:-.}" 2>/dev/null; }
daemon=$tamis_PID
call initialize '{"processId":'$$',"capabilities":{"experimental":{"tamis":{"approval":"request"}}}}'
call tool/list '{"filter":{"callable":true}}'
[[ $reply == *'"toolId":"units:convert"'* ]] && echo "tools: true"
call prompt/generate '{"protocol":"action","toolIds":["units:convert","text:statistics"]}'
messages=$(field text "$reply")
for text in "${turns[@]}"; do
  call agent/step '{"text":'"$(quoted "$text")"',"sessionId":"session-1","config":{"enabled":true,"protocol":"action","requireConfirmation":true}}'
  echo "model: $(field responseText "$reply")"
  [[ $reply != *'"stop":"'* ]] || break # noTools: that was the answer; the others end a loop that goes nowhere
  observation=$(field observation "$reply")
  echo "$observation"
  messages+=$'\n'$text$'\n'$observation
done
call agent/end '{"sessionId":"session-1"}'
input=${tamis[1]}
exec {input}>&- # the end of its input ends the daemon
wait "$daemon" && echo "ended: 0"

#!/usr/bin/env bash
# From a fresh Debian or Ubuntu machine (with Rust) to a live view in psql: installs what is missing, builds, starts a
# server with a built-in auction stream, makes views and shows them changing. Ctrl-C ends it; nothing is left behind.
set -euo pipefail
cd "$(dirname "$0")/.."

bash .ci/setup
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/highwater/target}"
cargo build --release --workspace --bins # as the tests build it, so that nothing is built twice
highwater="$CARGO_TARGET_DIR/release/highwater"

folder="$(mktemp -d)"
port="${PORT:-7432}"
"$highwater" serve --data "$folder/data" --listen "127.0.0.1:$port" >"$folder/log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true; rm -rf "$folder"' EXIT
for _ in $(seq 100); do
    grep -q 'is ready' "$folder/log" && break
    kill -0 $server 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
    sleep 0.1
done

sql() { psql "postgresql://postgres@127.0.0.1:$port/highwater" --no-psqlrc --quiet -v ON_ERROR_STOP=1 "$@"; }

echo '-- Bids of a live auction, 1,000 events a second, made by the server itself'
sql --echo-queries -f examples/auction.sql

for second in $(seq "${SECONDS_TO_SHOW:-5}"); do
    sleep 1
    echo "-- after $second s: the channels with most bids in the newest windows"
    sql -c 'SELECT channel, window_start, bids, avg_price, max_price FROM channel_10s ORDER BY window_start DESC, bids DESC LIMIT 5'
done
echo "-- The server goes on until Ctrl-C:  psql 'postgresql://postgres@127.0.0.1:$port/highwater'"
if [ -t 0 ]; then wait $server; fi

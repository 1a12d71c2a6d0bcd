#!/bin/sh
# Makes the secrets of compose.yaml in ./secrets. Files that are there already stay: a
# sealing key that is lost cannot be made again.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
# The folder keeps others out. Its files must be readable to the containers' users.
keep() { # name
  [ -s "secrets/$1" ] || { cat >"secrets/$1.new" && chmod 444 "secrets/$1.new" && mv "secrets/$1.new" "secrets/$1"; }
}
openssl rand -base64 32 | keep sealing-keys
openssl rand -hex 32 | keep operator-token
openssl rand -hex 32 | tr -d '\n' | keep postgres-password
printf 'postgres://surehook:%s@postgres:5432/surehook\n' "$(cat secrets/postgres-password)" | keep database

#!/bin/sh
# Make the passwords that compose.yaml asks for, and the settings that hold them. What is there already is kept.
set -eu

cd "$(dirname "$0")"
mkdir -p secrets
# Each container reads its own as a user of its own, so the files are open; the folder lets nobody else through.
chmod 700 secrets
umask 022

password() {
    od -An -N24 -tx1 /dev/urandom | tr -d ' \n'
}

if [ ! -s secrets/redrive.toml ]; then
    redis=$(password)
    postgres=$(password)
    echo "requirepass $redis" > secrets/redis_password.conf
    echo "$postgres" > secrets/postgres_password
    cat > secrets/redrive.toml <<SETTINGS
broker = "redis://:$redis@redis:6379"
store = "postgresql://redrive:$postgres@postgres/letters"
SETTINGS
fi
[ -s secrets/grafana_password ] || password > secrets/grafana_password

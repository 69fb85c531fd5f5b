#!/bin/sh
# Creates the namespace and registers the search attributes that the workflows set. Without them no
# subscription can start. Safe to repeat. Address and namespace come from the TEMPORAL_* variables of
# the Temporal CLI.
set -eu

tries=0
until temporal operator cluster health; do
  tries=$((tries + 1))
  if [ "$tries" -ge 30 ]; then
    echo 'the Temporal server does not answer' >&2
    exit 1
  fi
  sleep 2
done

if ! temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1; then
  temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention 30d
fi

# It takes some seconds until a new namespace is known everywhere, so the command is repeated. An
# existing attribute does not change.
tries=0
until temporal operator search-attribute create \
  --name MerchantId --type Keyword \
  --name SubscriptionStatus --type Keyword \
  --name LastOutcome --type Keyword \
  --name ReceiptId --type Keyword; do
  tries=$((tries + 1))
  if [ "$tries" -ge 15 ]; then
    echo 'the search attributes cannot be registered' >&2
    exit 1
  fi
  sleep 2
done
echo "namespace $TEMPORAL_NAMESPACE is ready"

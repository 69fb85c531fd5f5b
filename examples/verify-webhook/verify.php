<?php
// Verifies a webhook. Usage: php verify.php <secret> < delivery.json
// delivery.json: {"headers": {…}, "body": "<the received bytes, in Base64>"}

/** $body: the received bytes, before any parsing. $secret: the text of `eventSigner`. */
function isGenuine(string $body, array $headers, string $secret): bool
{
    $key = str_starts_with($secret, 'whsec_') ? base64_decode(substr($secret, 6)) : $secret;
    $signed = "{$headers['webhook-id']}.{$headers['webhook-timestamp']}.$body";
    $right = 'v1,' . base64_encode(hash_hmac('sha256', $signed, $key, true));
    if (abs(time() - (int) $headers['webhook-timestamp']) >= 300) {
        return false;
    }
    foreach (explode(' ', $headers['webhook-signature']) as $given) {
        if (hash_equals($right, $given)) {
            return true;
        }
    }
    return false;
}

/** Checks the older signature, which does not stop a replay. Its key is the secret's whole text. */
function hasXpaySignature(string $body, array $headers, string $secret): bool
{
    $right = base64_encode(hash_hmac('sha512', $body, $secret, true));
    return hash_equals($right, $headers['xpay-signature']);
}

['headers' => $headers, 'body' => $body] = json_decode(file_get_contents('php://stdin'), true);
$body = base64_decode($body);
echo 'webhook-signature ', isGenuine($body, $headers, $argv[1]) ? 'valid' : 'wrong', "\n";
echo 'xpay-signature ', hasXpaySignature($body, $headers, $argv[1]) ? 'valid' : 'wrong', "\n";

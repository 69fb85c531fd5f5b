// Verifies a webhook. Usage: go run verify.go <secret> < delivery.json
// delivery.json: {"headers": {…}, "body": "<the received bytes, in Base64>"}
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"os"
	"strconv"
	"strings"
	"time"
)

// isGenuine gets the received bytes, before any parsing, and the text of `eventSigner`.
func isGenuine(body []byte, headers map[string]string, secret string) bool {
	key := []byte(secret)
	if encoded, found := strings.CutPrefix(secret, "whsec_"); found {
		key, _ = base64.StdEncoding.DecodeString(encoded)
	}
	signed := headers["webhook-id"] + "." + headers["webhook-timestamp"] + "."
	right := "v1," + mac(sha256.New, key, append([]byte(signed), body...))
	sentAt, _ := strconv.ParseInt(headers["webhook-timestamp"], 10, 64)
	isRecent := time.Since(time.Unix(sentAt, 0)).Abs() < 5*time.Minute
	for _, given := range strings.Split(headers["webhook-signature"], " ") {
		if isRecent && hmac.Equal([]byte(given), []byte(right)) {
			return true
		}
	}
	return false
}

// hasXpaySignature checks the older signature, which does not stop a replay. Its key is the secret's
// whole text.
func hasXpaySignature(body []byte, headers map[string]string, secret string) bool {
	right := mac(sha512.New, []byte(secret), body)
	return hmac.Equal([]byte(headers["xpay-signature"]), []byte(right))
}

func mac(algorithm func() hash.Hash, key []byte, signed []byte) string {
	code := hmac.New(algorithm, key)
	code.Write(signed)
	return base64.StdEncoding.EncodeToString(code.Sum(nil))
}

func main() {
	var delivery struct {
		Headers map[string]string
		Body    []byte
	}
	if err := json.NewDecoder(os.Stdin).Decode(&delivery); err != nil {
		panic(err)
	}
	report := func(name string, isValid bool) {
		fmt.Println(name, map[bool]string{true: "valid", false: "wrong"}[isValid])
	}
	report("webhook-signature", isGenuine(delivery.Body, delivery.Headers, os.Args[1]))
	report("xpay-signature", hasXpaySignature(delivery.Body, delivery.Headers, os.Args[1]))
}

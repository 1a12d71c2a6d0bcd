package signing

// MAC computes through the pooled state that both schemes use.
func MAC(key []byte, timestamp string, body []byte) [32]byte {
	return newHMACKey(key).mac("", timestamp, body)
}

// SignBytes signs with an Ed25519 private key.
func SignBytes(s Secret, message []byte) []byte { return s.m.sign(message) }

// VerifyBytes verifies with an Ed25519 key.
func VerifyBytes(s Secret, message, signature []byte) bool { return s.m.verify(message, signature) }

// ShortSecret is for published values, whose secrets are shorter than what
// ParseTextSecret takes.
func ShortSecret(text string) Secret { return newHMACSecret(text, nil, false) }

// JSONText is the reader of facts.
func JSONText(doc []byte, path string) (string, bool) { return jsonText(doc, path) }

package signing

import (
	"crypto/fips140"
	"errors"
)

// Under GODEBUG=fips140=only the standard library panics where an HMAC is not one of those
// that FIPS 140-3 approves. A program must learn that when it makes a scheme: a panic would
// come from a request.

// approvedKey is the least length of a key in bytes (NIST SP 800-131A: 112 bits).
const approvedKey = 14

// allowed returns why this process may not compute signatures of an algorithm.
func (a Algorithm) allowed() error {
	if a == HMACSHA1 && fips140.Enforced() {
		return errors.New("it rests on SHA-1, which GODEBUG=fips140=only does not allow: GODEBUG=fips140=on does")
	}
	return nil
}

// allowedKey tells whether this process may compute HMACs under a key.
func allowedKey(key []byte) bool { return len(key) >= approvedKey || !fips140.Enforced() }

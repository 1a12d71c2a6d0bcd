package httpsig

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
)

// digests are those of a Content-Digest (RFC 9530) that are known here.
type digests struct {
	sha256    [sha256.Size]byte
	sha512    [sha512.Size]byte
	has256    bool
	has512    bool
	malformed string // what is wrong, or ""
}

// read takes a dictionary of byte sequences. Digests of other algorithms are skipped if there
// is one that is known: each of those must be the body's.
func (d *digests) read(text string, seen *keys) {
	d.has256, d.has512, d.malformed, seen.n = false, false, "", 0
	s := scanner{text: text}
	for {
		name, ok := s.key()
		if !ok || !seen.add(name) || !s.take('=') {
			d.malformed = "is malformed: it must be a list of digests such as sha-256=:BASE64:, each algorithm once"
			return
		}
		value, ok := s.bytes()
		switch {
		case ok && name == "sha-256":
			d.has256, ok = true, decodeInto(d.sha256[:], value)
		case ok && name == "sha-512":
			d.has512, ok = true, decodeInto(d.sha512[:], value)
		case ok:
			_, ok = decode(nil, value)
		}
		more, good := s.next()
		switch {
		case !ok || !good:
			d.malformed = "is malformed: a digest is not the base64 of the algorithm's length between colons"
			return
		case more:
		case !d.has256 && !d.has512:
			d.malformed = "has no digest that is known here: it needs sha-256 or sha-512"
			return
		default:
			return
		}
	}
}

// decodeInto takes base64 of exactly the length of dst, which leaves no room for the line ends
// that the decoder would skip.
func decodeInto(dst []byte, text string) bool {
	if len(text) != base64.StdEncoding.EncodedLen(len(dst)) {
		return false
	}
	var raw [(sha512.Size + 2) / 3 * 4]byte
	var room [sha512.Size + 2]byte
	n, err := strictBase64.Decode(room[:], raw[:copy(raw[:], text)])
	return err == nil && copy(dst, room[:n]) == n && n == len(dst)
}

// match compares in constant time.
func (d *digests) match(body []byte) bool {
	ok := 1
	if d.has256 {
		sum := sha256.Sum256(body)
		ok &= subtle.ConstantTimeCompare(sum[:], d.sha256[:])
	}
	if d.has512 {
		sum := sha512.Sum512(body)
		ok &= subtle.ConstantTimeCompare(sum[:], d.sha512[:])
	}
	return ok == 1 && (d.has256 || d.has512)
}

// digestOf is what Sign sets.
func digestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

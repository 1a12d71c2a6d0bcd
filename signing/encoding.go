package signing

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
)

// decode fills the first size bytes of dst from the one form that they have.
func (e Encoding) decode(dst *digest, size int, text string) bool {
	switch {
	case e == Base64:
		return decodeBase64(dst, size, text)
	case size == sha256.Size:
		return decodeLowerHex((*[sha256.Size]byte)(dst[:]), text)
	default:
		return decodeLowerHexOf(dst[:size], text)
	}
}

func (e Encoding) appendTo(dst, raw []byte) []byte {
	if e == Base64 {
		return base64.StdEncoding.AppendEncode(dst, raw)
	}
	return hex.AppendEncode(dst, raw)
}

func (e Encoding) form(size int) string {
	if e == Base64 {
		return fmt.Sprintf("%d characters of base64", base64.StdEncoding.EncodedLen(size))
	}
	return fmt.Sprintf("%d lowercase hex digits", hex.EncodedLen(size))
}

const maxBase64 = (len(digest{}) + 2) / 3 * 4

func decodeBase64(dst *digest, size int, text string) bool {
	if len(text) != base64.StdEncoding.EncodedLen(size) || len(text) > maxBase64 {
		return false
	}
	// The length leaves no room for the line breaks that the decoder would skip.
	var raw [maxBase64]byte
	var decoded [maxBase64 / 4 * 3]byte
	n, err := strictBase64.Decode(decoded[:], raw[:copy(raw[:], text)])
	if err != nil || n != size {
		return false
	}
	copy(dst[:], decoded[:n])
	return true
}

// decodeLowerHexOf is decodeLowerHex for other lengths.
func decodeLowerHexOf(dst []byte, s string) bool {
	if len(s) != 2*len(dst) {
		return false
	}
	var seen byte
	for i := range dst {
		a, b := lowerHex[s[2*i]], lowerHex[s[2*i+1]]
		seen |= a | b
		dst[i] = a<<4 | b
	}
	return seen < notHex
}

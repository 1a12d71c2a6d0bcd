package signing

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
)

// decode fills the first size bytes of dst from the one form that they have, or from one of
// those that the encoding says.
func (e Encoding) decode(dst *digest, size int, text string) bool {
	switch {
	case e == Base64:
		return decodeBase64(dst, size, text)
	case e == HexAnyCase:
		return decodeAnyHex(dst[:size], text)
	case e == Base64Unpadded:
		return decodeUnpadded(dst, size, text, strictRawBase64)
	case e == Base64URL:
		return decodeUnpadded(dst, size, text, strictRawURL)
	case size == sha256.Size:
		return decodeLowerHex((*[sha256.Size]byte)(dst[:]), text)
	default:
		return decodeLowerHexOf(dst[:size], text)
	}
}

func (e Encoding) appendTo(dst, raw []byte) []byte {
	switch e {
	case Base64:
		return base64.StdEncoding.AppendEncode(dst, raw)
	case Base64Unpadded:
		return base64.RawStdEncoding.AppendEncode(dst, raw)
	case Base64URL:
		return base64.RawURLEncoding.AppendEncode(dst, raw)
	}
	return hex.AppendEncode(dst, raw)
}

func (e Encoding) form(size int) string {
	switch e {
	case Base64:
		return fmt.Sprintf("%d characters of base64", base64.StdEncoding.EncodedLen(size))
	case Base64Unpadded:
		return fmt.Sprintf("%d characters of base64, with padding behind them or without", base64.RawStdEncoding.EncodedLen(size))
	case Base64URL:
		return fmt.Sprintf("%d characters of base64url, with padding behind them or without", base64.RawURLEncoding.EncodedLen(size))
	case HexAnyCase:
		return fmt.Sprintf("%d hex digits", hex.EncodedLen(size))
	}
	return fmt.Sprintf("%d lowercase hex digits", hex.EncodedLen(size))
}

var (
	strictRawBase64 = base64.RawStdEncoding.Strict()
	strictRawURL    = base64.RawURLEncoding.Strict()
)

// decodeUnpadded also takes the padding, if it is whole.
func decodeUnpadded(dst *digest, size int, text string, coding *base64.Encoding) bool {
	n := coding.EncodedLen(size)
	if len(text) != n {
		if padded := base64.StdEncoding.EncodedLen(size); len(text) != padded || text[n:] != "=="[:padded-n] {
			return false
		}
		text = text[:n]
	}
	var raw [maxBase64]byte
	var decoded [maxBase64 / 4 * 3]byte
	got, err := coding.Decode(decoded[:], raw[:copy(raw[:], text)])
	if err != nil || got != size {
		return false
	}
	copy(dst[:], decoded[:got])
	return true
}

// decodeAnyHex takes digits of either case.
func decodeAnyHex(dst []byte, text string) bool {
	if len(text) != 2*len(dst) {
		return false
	}
	for i := range dst {
		a, b := hexDigit(text[2*i]), hexDigit(text[2*i+1])
		if a|b >= notHex {
			return false
		}
		dst[i] = a<<4 | b
	}
	return true
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

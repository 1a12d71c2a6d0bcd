package signing

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
)

// digests are those of a body that can be a part of the signed text. Their texts have a
// fixed length, so that nothing beside them can shift into them.
var digests = map[string]func(body []byte) string{
	"sha256:hex":    func(body []byte) string { sum := sha256.Sum256(body); return hex.EncodeToString(sum[:]) },
	"sha256:base64": func(body []byte) string { sum := sha256.Sum256(body); return base64.StdEncoding.EncodeToString(sum[:]) },
	"sha512:hex":    func(body []byte) string { sum := sha512.Sum512(body); return hex.EncodeToString(sum[:]) },
	"sha512:base64": func(body []byte) string { sum := sha512.Sum512(body); return base64.StdEncoding.EncodeToString(sum[:]) },
}

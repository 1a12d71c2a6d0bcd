package jose

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/surehook/surehook/signing"
)

// ErrKeys: the keys could not be had, so nobody knows whether a token is right.
var ErrKeys = errors.New("jose: the keys could not be had")

// Keys finds the public keys of a sender. It must be safe for concurrent use.
type Keys interface {
	// Key returns the *rsa.PublicKey or *ecdsa.PublicKey of a kid: 1 to 128 visible
	// characters, which a stranger may have chosen. An error that matches
	// [signing.ErrNoValidKey] says that the sender has no such key. Any other says that
	// nobody knows, and a receiver answers 503.
	Key(id string) (crypto.PublicKey, error)
}

type fixed map[string]crypto.PublicKey

// FixedKeys has these keys, by their kid, and fetches nothing.
func FixedKeys(keys map[string]crypto.PublicKey) Keys {
	f := fixed{}
	for id, key := range keys {
		f[id] = key
	}
	return f
}

func (f fixed) Key(id string) (crypto.PublicKey, error) {
	if key, there := f[id]; there {
		return key, nil
	}
	return nil, errUnknown
}

var errUnknown = fmt.Errorf("jose: %w: the sender has no key of that kid", signing.ErrNoValidKey)

const minRSA, maxRSA = 2048, 8192

func fits(a Algorithm, key crypto.PublicKey) bool {
	switch key := key.(type) {
	case *rsa.PublicKey:
		return a == RS256 && key != nil && key.N != nil && key.N.BitLen() >= minRSA && key.N.BitLen() <= maxRSA && key.E > 2
	case *ecdsa.PublicKey:
		return a == ES256 && key != nil && key.Curve == elliptic.P256()
	}
	return false
}

// jwk is a JSON Web Key (RFC 7517), of the kinds of RFC 7518 section 6 that are used here.
type jwk struct {
	Kind  string `json:"kty"`
	ID    string `json:"kid"`
	Use   string `json:"use"`
	Alg   string `json:"alg"`
	N     string `json:"n"`
	E     string `json:"e"`
	Curve string `json:"crv"`
	X     string `json:"x"`
	Y     string `json:"y"`

	Expired *int64 `json:"expired_at"` // Plaid's
}

const maxKeys = 64

// ParseJWKS reads a JSON Web Key Set, for FixedKeys. Keys of other kinds than RS256's and
// ES256's, and those that are not for signatures, are passed over (RFC 7517 section 5).
func ParseJWKS(text []byte) (map[string]crypto.PublicKey, error) {
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || set.Keys == nil || len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("jose: this is no JSON Web Key Set of at most %d keys", maxKeys)
	}
	keys := map[string]crypto.PublicKey{}
	for i := range set.Keys {
		key, err := set.Keys[i].public()
		if err != nil || set.Keys[i].ID == "" {
			continue
		}
		if _, twice := keys[set.Keys[i].ID]; twice {
			return nil, errors.New("jose: the key set has two keys of one kid")
		}
		keys[set.Keys[i].ID] = key
	}
	if len(keys) == 0 {
		return nil, errors.New("jose: the key set has no key for RS256 or ES256 that has a kid")
	}
	return keys, nil
}

func (k *jwk) public() (crypto.PublicKey, error) {
	if k.Use != "" && k.Use != "sig" {
		return nil, errors.New("jose: the key is not for signatures")
	}
	switch {
	case k.Kind == "RSA" && (k.Alg == "" || k.Alg == string(RS256)):
		n, errN := number(k.N)
		e, errE := number(k.E)
		if errN != nil || errE != nil || len(e) > 4 {
			break
		}
		key := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
		if fits(RS256, key) {
			return key, nil
		}
	case k.Kind == "EC" && k.Curve == "P-256" && (k.Alg == "" || k.Alg == string(ES256)):
		x, errX := number(k.X)
		y, errY := number(k.Y)
		if errX != nil || errY != nil || len(x) != 32 || len(y) != 32 {
			break
		}
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
	}
	return nil, errors.New("jose: this is no key for RS256 of 2048 to 8192 bits, nor one for ES256")
}

func number(text string) ([]byte, error) { return base64.RawURLEncoding.Strict().DecodeString(text) }

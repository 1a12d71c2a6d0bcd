package signing

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"sync"
)

// hmacKey computes HMAC-SHA256 (RFC 2104) under one key. Keyed states are pooled
// and reset, which saves the two key blocks and all allocations of hmac.New. The
// key itself is reachable only from the pool's closure, where no printer that
// walks values by reflection finds it.
type hmacKey struct {
	states sync.Pool // of *macState
}

type macState struct {
	mac  hash.Hash
	head []byte // what precedes the body; kept so that strings need no copy of their own
	sum  [sha256.Size]byte
}

// newHMACKey keeps key: the caller must not change it afterwards.
func newHMACKey(key []byte) *hmacKey {
	k := new(hmacKey)
	k.states.New = func() any {
		return &macState{mac: hmac.New(sha256.New, key), head: make([]byte, 0, 160)}
	}
	return k
}

// mac returns the MAC of "timestamp.body" or, with an id, "id.timestamp.body".
func (k *hmacKey) mac(id, timestamp string, body []byte) [sha256.Size]byte {
	s := k.states.Get().(*macState)
	s.head = appendHead(s.head[:0], id, timestamp)
	// Filled up to whole blocks: then the rest of the body is hashed where it lies.
	fill := min(-len(s.head)&(sha256.BlockSize-1), len(body))
	s.head = append(s.head, body[:fill]...)
	s.mac.Write(s.head)
	s.mac.Write(body[fill:])
	s.mac.Sum(s.sum[:0])
	s.mac.Reset()
	sum := s.sum
	k.states.Put(s)
	return sum
}

func appendHead(dst []byte, id, timestamp string) []byte {
	if id != "" {
		dst = append(append(dst, id...), '.')
	}
	return append(append(dst, timestamp...), '.')
}

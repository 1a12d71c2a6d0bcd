package signing

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"hash"
	"sync"
)

// hmacKey computes HMACs (RFC 2104) under one key. Keyed states are pooled and
// reset, which saves the two key blocks and all allocations of hmac.New. The key
// itself is reachable only from the pools' closures, where no printer that walks
// values by reflection finds it.
type hmacKey struct {
	states [keyedAlgorithms]sync.Pool // of *macState
}

type macState struct {
	mac  hash.Hash
	head []byte // what precedes the body; kept so that strings need no copy of their own
	tail []byte // what follows it
	sum  digest
}

// digest has room for what any algorithm makes: a MAC or an Ed25519 signature.
type digest [sha512.Size]byte

// newHMACKey keeps key: the caller must not change it afterwards.
func newHMACKey(key []byte) *hmacKey {
	k := new(hmacKey)
	for algorithm, newHash := range [keyedAlgorithms]func() hash.Hash{HMACSHA256: sha256.New, HMACSHA512: sha512.New, HMACSHA1: sha1.New} {
		k.states[algorithm].New = func() any {
			return &macState{mac: hmac.New(newHash, key), head: make([]byte, 0, 160)}
		}
	}
	k.states[PlainSHA256].New = func() any {
		s := &macState{mac: &prefixed{sha256.New(), key}}
		s.mac.Reset()
		return s
	}
	return k
}

// begin returns a state whose head and tail are empty and to be filled. It must go to end.
func (k *hmacKey) begin(algorithm Algorithm) *macState {
	s := k.states[algorithm].Get().(*macState)
	s.head, s.tail = s.head[:0], s.tail[:0]
	return s
}

// end computes the MAC of the head, the body and the tail into sum, and gives the state back.
func (k *hmacKey) end(algorithm Algorithm, s *macState, body []byte, sum *digest) {
	if len(s.head) > 0 {
		// Filled up to whole blocks: then the rest of the body is hashed where it lies.
		fill := min(-len(s.head)&(s.mac.BlockSize()-1), len(body))
		s.head = append(s.head, body[:fill]...)
		s.mac.Write(s.head)
		body = body[fill:]
	}
	s.mac.Write(body)
	if len(s.tail) > 0 {
		s.mac.Write(s.tail)
	}
	s.mac.Sum(s.sum[:0])
	s.mac.Reset()
	*sum = s.sum
	if cap(s.head) > maxKeptHead {
		s.head = nil // one long head must not be paid for ever
	}
	if cap(s.tail) > maxKeptHead {
		s.tail = nil
	}
	k.states[algorithm].Put(s)
}

const maxKeptHead = 4096

// mac returns the HMAC-SHA256 of "timestamp.body" or, with an id, "id.timestamp.body".
func (k *hmacKey) mac(id, timestamp string, body []byte) [sha256.Size]byte {
	s := k.begin(HMACSHA256)
	s.head = appendHead(s.head, id, timestamp)
	var sum digest
	k.end(HMACSHA256, s, body, &sum)
	return [sha256.Size]byte(sum[:sha256.Size])
}

func appendHead(dst []byte, id, timestamp string) []byte {
	if id != "" {
		dst = append(append(dst, id...), '.')
	}
	return append(append(dst, timestamp...), '.')
}

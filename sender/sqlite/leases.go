package sqlite

import (
	"slices"

	"github.com/surehook/surehook/sender"
)

// lease is an attempt in flight. Its number is also its token.
type lease struct {
	key       sender.DeliveryKey
	claimedAt int64
	end       int64
	number    int64
	tries     int64 // attempts of the present schedule, this one included
	first     int64 // when the first of them was claimed
	single    bool
	known     bool // to its head, which is due no later than the lease ends
}

// leases are those of all processes, in the order of their claims.
type leases struct {
	all   []lease
	at    map[sender.DeliveryKey]int // index in all; made when it is first needed
	gone  int                        // zero leases in all
	dirty bool
}

const leasesFormat = 1

const (
	leaseSingle = 1 << iota
	leaseKnown
	leaseLater // not the first attempt of all: number, tries and first follow
)

func unpackLeases(b []byte) (*leases, error) {
	l := &leases{}
	if len(b) == 0 {
		return l, nil
	}
	if b[0] != leasesFormat {
		return nil, errPacked
	}
	u := unpacker{b: b[1:]}
	for len(u.b) > 0 {
		claimedAt := u.int()
		end := claimedAt + u.int()
		for n := u.uint(); n > 0 && !u.bad; n-- {
			flags := u.uint()
			le := lease{
				key: sender.DeliveryKey{Subscription: u.int(), Event: u.int()}, claimedAt: claimedAt, end: end,
				number: 1, tries: 1, first: claimedAt, single: flags&leaseSingle != 0, known: flags&leaseKnown != 0,
			}
			if flags&leaseLater != 0 {
				le.number, le.tries, le.first = u.int(), u.int(), u.int()
			}
			l.all = append(l.all, le)
		}
	}
	return l, u.err()
}

// pack writes runs of leases that were claimed together: when, for how long, how
// many, and of each its flags, subscription and event.
func (l *leases) pack() []byte {
	if l.gone > 0 {
		l.all = slices.DeleteFunc(l.all, func(le lease) bool { return le.number == 0 })
		l.gone, l.at = 0, nil
	}
	if len(l.all) == 0 {
		return []byte{}
	}
	b := append(make([]byte, 0, 32+9*len(l.all)), leasesFormat)
	for rest := l.all; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].claimedAt == rest[0].claimedAt && rest[n].end == rest[0].end {
			n++
		}
		b = packInt(packInt(packInt(b, rest[0].claimedAt), rest[0].end-rest[0].claimedAt), int64(n))
		for _, le := range rest[:n] {
			flags := int64(0)
			if le.single {
				flags |= leaseSingle
			}
			if le.known {
				flags |= leaseKnown
			}
			later := le.number != 1 || le.tries != 1 || le.first != le.claimedAt
			if later {
				flags |= leaseLater
			}
			b = packInt(packInt(packInt(b, flags), le.key.Subscription), le.key.Event)
			if later {
				b = packInt(packInt(packInt(b, le.number), le.tries), le.first)
			}
		}
		rest = rest[n:]
	}
	return b
}

// find returns nil if the delivery is not leased. What it points to is valid until
// a lease is added.
func (l *leases) find(key sender.DeliveryKey) *lease {
	if l.at == nil {
		l.at = make(map[sender.DeliveryKey]int, len(l.all))
		for i := range l.all {
			if l.all[i].number > 0 {
				l.at[l.all[i].key] = i
			}
		}
	}
	if i, ok := l.at[key]; ok {
		return &l.all[i]
	}
	return nil
}

func (l *leases) add(le lease) {
	if l.at != nil {
		l.at[le.key] = len(l.all)
	}
	l.all = append(l.all, le)
	l.dirty = true
}

// remove returns the lease that it took away.
func (l *leases) remove(le *lease) lease {
	was := *le
	if l.at != nil {
		delete(l.at, le.key)
	}
	*le = lease{}
	l.gone++
	l.dirty = true
	return was
}

// nextEnd is that of the leases that no head knows of; 0 if there are none.
func (l *leases) nextEnd() (next int64) {
	for i := range l.all {
		if le := &l.all[i]; le.number > 0 && !le.known && (next == 0 || le.end < next) {
			next = le.end
		}
	}
	return next
}

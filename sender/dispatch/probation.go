package dispatch

// An endpoint can answer fast for a while, then hang or fail for a while, and so on. It
// would earn many proven places each time, and keep them from the others until its failures
// are noticed. So a subscription that is sent back to probation soon after the last time
// must stay there, however fast it answers. It stays the longer, the more often it is sent
// back.

// They are counted in ages of slots; an age takes about trimEvery.
const (
	probationSoon  = 6 // after the end of the last probation
	probationFirst = 3
	probationMost  = 60
)

// probation remembers a subscription's times on probation. The zero value says that it was
// never sent back.
type probation struct {
	began  int64
	length int64
	sent   bool // it was sent back to probation at least once
}

// restart notes that the subscription is sent back to probation.
func (p *probation) restart(age int64) {
	if p.remembered(age) {
		p.length = min(max(2*p.length, probationFirst), probationMost)
	} else {
		p.length = 0
	}
	p.began, p.sent = age, true
}

// holds reports whether the subscription must stay on probation.
func (p *probation) holds(age int64) bool { return age-p.began < p.length }

// remembered reports whether being sent back now would be soon after the last
// time.
func (p *probation) remembered(age int64) bool {
	return p.sent && age-p.began <= p.length+probationSoon
}

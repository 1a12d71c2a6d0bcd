package dispatch

// An endpoint that answers fast for a while, hangs or fails for a while, and so on,
// would earn many proven places each time and keep them from the others until that
// is noticed. A subscription that is sent back to probation soon after the last time
// therefore stays there, however fast it answers: the longer, the more often it
// happens.

// In ages of slots, of about trimEvery each.
const (
	probationSoon  = 6 // after its end
	probationFirst = 3
	probationMost  = 60
)

// probation is what is remembered of a subscription's times on probation. The zero value
// says that it was never sent back.
type probation struct {
	began  int64
	length int64
	sent   bool // back to probation, at least once
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
func (p *probation) holds(age int64) bool { return p.sent && age-p.began < p.length }

// remembered reports whether being sent back now would be soon after the last
// time.
func (p *probation) remembered(age int64) bool {
	return p.sent && age-p.began <= p.length+probationSoon
}

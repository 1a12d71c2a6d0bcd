package dispatch

// An endpoint that answers fast for a while, hangs or fails for a while, and so on,
// would earn many proven places each time and keep them from the others until that
// is noticed. Whoever is sent back to probation again soon after the last time
// therefore stays there, however fast it answers: the longer, the more often it
// happens.

// In ages of slots, of about trimEvery each.
const (
	paroleSoon  = 6 // after its end
	paroleFirst = 3
	paroleMost  = 60
)

// parole is a subscription's. Its zero value is that of one that was never sent
// back.
type parole struct {
	began  int64
	length int64
	sent   bool // back to probation, at least once
}

// begin is that the subscription is sent back to probation.
func (p *parole) begin(age int64) {
	if p.remembered(age) {
		p.length = min(max(2*p.length, paroleFirst), paroleMost)
	} else {
		p.length = 0
	}
	p.began, p.sent = age, true
}

// holds reports whether the subscription must stay on probation.
func (p *parole) holds(age int64) bool { return p.sent && age-p.began < p.length }

// remembered reports whether being sent back now would be soon after the last
// time.
func (p *parole) remembered(age int64) bool { return p.sent && age-p.began <= p.length+paroleSoon }

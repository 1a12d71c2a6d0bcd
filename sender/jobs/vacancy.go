package jobs

import (
	"maps"
	"slices"
)

// servedMost bounds the owners that are left out because they had their turn: then a round begins
// although others wait.
const servedMost = 100

// vacancy is what a worker may begin of a kind. Where owners have a bound, their jobs are claimed
// one by one, in rounds: in each round an owner has one turn. A round ends when no others wait. So
// an owner with many jobs delays another one by a job, and not by all that it has.
type vacancy struct {
	kind    string
	room    int            // how many more jobs may be begun
	ofOne   int            // how many jobs of an owner may run; 0: there is no bound
	running map[string]int // by owner; 0 is left out
	served  []string       // the owners that had their turn in this round
	anew    bool           // no others wait: the next job begins a round
}

// vacancies returns those of the kinds of which more jobs may be begun, in the order of their
// names.
func (w *worker[Tx]) vacancies() (all []*vacancy) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(w.running)) {
		k := w.j.kinds[name]
		v := &vacancy{kind: name, room: k.Concurrency, ofOne: k.OwnerConcurrency, running: maps.Clone(w.running[name]), served: slices.Clone(w.served[name])}
		for _, n := range v.running {
			v.room -= n
		}
		if v.room > 0 {
			all = append(all, v)
		}
	}
	return all
}

// count counts a job that begins, by 1, or ends, by -1.
func (w *worker[Tx]) count(j Job, by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.running[j.Kind]
	if of[j.Owner] += by; of[j.Owner] == 0 {
		delete(of, j.Owner)
	}
}

// atOnce is how many jobs one query may take.
func (v *vacancy) atOnce() int {
	if v.ofOne > 0 {
		return 1
	}
	return v.room
}

// full are the owners that have as many places as one may have.
func (v *vacancy) full() (owners []string) {
	for owner, n := range v.running {
		if v.ofOne > 0 && n >= v.ofOne {
			owners = append(owners, owner)
		}
	}
	return owners
}

// except are the owners whose jobs may not be begun now.
func (v *vacancy) except() []string {
	if v.anew {
		return v.full()
	}
	return append(v.full(), v.served...)
}

// take counts a job that was claimed.
func (v *vacancy) take(owner string) {
	v.room--
	if v.ofOne == 0 {
		return
	}
	v.running[owner]++
	// The job of an owner that has had no turn may have come only now.
	if v.anew && slices.Contains(v.served, owner) || len(v.served) == servedMost {
		v.served = nil
	}
	v.served, v.anew = append(v.served, owner), false
}

// nextRound has those looked at who had their turn. It returns false if they were already.
func (v *vacancy) nextRound() bool {
	if v.anew || len(v.served) == 0 {
		return false
	}
	v.anew = true
	return true
}

package look

import (
	"slices"
	"strconv"

	"github.com/surehook/surehook/sender"
)

// attemptsAPage is how many attempts of a delivery are listed at a time.
const attemptsAPage = 25

// AttemptsPage is a part of a delivery's attempts, the newest first, and the one that is shown
// whole.
type AttemptsPage struct {
	List         []sender.Attempt
	Chosen       *sender.Attempt // of the list; nil: there is none
	Newer, Older int             // the numbers of the attempts beside it; 0: there is none
	Foot         Pages
}

// AttemptsOf is the part of a delivery's attempts, which are the oldest first, that has the one
// of a number. There it is chosen; without such a one it is the newest. Links name the number
// as "attempt".
func AttemptsOf(attempts []sender.Attempt, number string) (p AttemptsPage) {
	all := slices.Clone(attempts)
	slices.Reverse(all)
	if len(all) == 0 {
		return p
	}
	i := max(0, slices.IndexFunc(all, func(a sender.Attempt) bool { return strconv.Itoa(a.Number) == number }))
	from := i - i%attemptsAPage
	to := min(len(all), from+attemptsAPage)
	p.List, p.Chosen = all[from:to], &all[i]
	if i > 0 {
		p.Newer = all[i-1].Number
	}
	if i < len(all)-1 {
		p.Older = all[i+1].Number
	}
	if len(all) > attemptsAPage {
		p.Foot.Of = Count(from+1) + " to " + Count(to) + " of " + Count(len(all))
	}
	if from > 0 {
		p.Foot.First = "?"
	}
	if to < len(all) {
		p.Foot.Next = "?attempt=" + strconv.Itoa(all[to].Number)
	}
	return p
}

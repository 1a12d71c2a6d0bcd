package look

import (
	"slices"
	"strconv"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
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

// DeliveryWithAttempts reads a delivery with the page of its attempts that has the one with a
// number, and no others. That one is chosen, or the newest if there is none of that number.
// Links name the number as "attempt".
func DeliveryWithAttempts(number string, read func(q history.AttemptQuery) (sender.Delivery, error)) (sender.Delivery, AttemptsPage, error) {
	d, err := read(history.AttemptQuery{Limit: attemptsAPage})
	count := d.AttemptCount
	chosen, none := strconv.Atoi(number)
	if none != nil || chosen < 1 || chosen > count {
		chosen = count
	}
	newer := (count - chosen) / attemptsAPage * attemptsAPage // than those of the page
	if err == nil && newer > 0 {
		d, err = read(history.AttemptQuery{Before: count - newer + 1, Limit: attemptsAPage})
	}
	if err != nil || len(d.Attempts) == 0 {
		return d, AttemptsPage{}, err
	}
	return d, attemptsPage(d.Attempts, chosen, newer, count), nil
}

// attemptsPage is the page of some attempts, which are the oldest first. There are count in
// all, and newer of them come before it.
func attemptsPage(attempts []sender.Attempt, chosen, newer, count int) (p AttemptsPage) {
	p.List = slices.Clone(attempts)
	slices.Reverse(p.List)
	p.Chosen = &p.List[max(0, slices.IndexFunc(p.List, func(a sender.Attempt) bool { return a.Number == chosen }))]
	p.Older = chosen - 1
	if chosen < count {
		p.Newer = chosen + 1
	}
	to := newer + len(p.List)
	if count > attemptsAPage {
		p.Foot.Of = Count(newer+1) + " to " + Count(to) + " of " + Count(count)
	}
	if newer > 0 {
		p.Foot.First = "?"
	}
	if to < count {
		p.Foot.Next = "?attempt=" + strconv.Itoa(count-to)
	}
	return p
}

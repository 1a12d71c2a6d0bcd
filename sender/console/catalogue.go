package console

import "github.com/surehook/surehook/sender/catalogue"

// known is what the catalogue says of a type, or nil.
func (c *Console) known(eventType string) *catalogue.Type {
	if c.cfg.Catalogue == nil {
		return nil
	}
	if t, ok := c.cfg.Catalogue.Lookup(eventType); ok {
		return &t
	}
	return nil
}

// typeNames are the types that fields for one propose.
func (c *Console) typeNames() (names []string) {
	if c.cfg.Catalogue == nil {
		return nil
	}
	for _, t := range c.cfg.Catalogue.Types() {
		names = append(names, t.Name)
	}
	return names
}

// kindWord says what an event of a kind is.
func kindWord(k catalogue.Kind) string {
	switch k {
	case catalogue.State:
		return "A state: only its object's newest version counts."
	case catalogue.Fact:
		return "A fact: each of them counts."
	}
	return "Thin: the receiver fetches the object."
}

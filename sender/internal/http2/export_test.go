package http2

// Usable reports whether a connection is kept that could be used again.
func (c *Client) Usable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, all := range c.conns {
		for _, cn := range all {
			if cn.Available() > 0 {
				return true
			}
		}
	}
	return false
}

// Kept is how many connections there are.
func (c *Client) Kept() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, all := range c.conns {
		n += len(all)
	}
	return n
}

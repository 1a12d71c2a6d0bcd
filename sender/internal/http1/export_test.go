package http1

// Alive checks the connection that was kept last, as a request does.
func (c *Client) Alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.idle.newest.alive()
}

// Idle is how many connections are kept.
func (c *Client) Idle() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.idle.n
}

// Watched is how many connections are kept only to learn from them.
func (c *Client) Watched() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.watched)
}

// Awaited is how many contexts are waited for.
func (c *Client) Awaited() int {
	c.endings.mu.Lock()
	defer c.endings.mu.Unlock()
	return len(c.endings.by)
}

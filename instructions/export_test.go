package instructions

// For tests of package instructions_test.

func (w *Workspace) NewHome(parent string) (*Home, error) { return w.newHome(parent) }
func (w *Workspace) RemoveBlock(b Block) error            { return w.removeBlock(b) }
func (w *Workspace) RemoveFromJSON(j JSONList) error      { return w.removeFromJSON(j) }

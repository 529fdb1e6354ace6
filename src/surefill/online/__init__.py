"""Online partial completion: the game between a confidence and the matrices that fit what was seen so far."""

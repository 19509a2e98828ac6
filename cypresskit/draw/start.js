// Register the pictures that load() and saved pages can start.
import {beginGuess} from "./guess_page.js"
import {beginJourney} from "./journey.js"
import {bringToLife} from "./picture.js"
import {beginPlayer} from "./player.js"

const LOOK = "$look"

bringToLife(
  {
    guess: beginGuess,
    journey: beginJourney,
    player: beginPlayer,
  },
  LOOK,
)

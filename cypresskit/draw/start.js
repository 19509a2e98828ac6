// What load() and a saved page bring to life.
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

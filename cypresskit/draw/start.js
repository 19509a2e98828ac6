// What load() and a saved page bring to life.
import {beginGame} from "../teach/l03_bundles/bundle_game.js"
import {beginPitch} from "../teach/l07_lds/lds_pitch.js"
import {beginGuess} from "./guess_page.js"
import {beginJourney} from "./journey.js"
import {bringToLife} from "./picture.js"
import {beginPlayer} from "./player.js"

const LOOK = "$look"

bringToLife(
  {
    bundle_game: beginGame,
    guess: beginGuess,
    journey: beginJourney,
    lds_pitch: beginPitch,
    player: beginPlayer,
  },
  LOOK,
)
